"""The weather of some cities on FastMCP; see ../../docs/compare.md."""

from typing import Annotated, Literal

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ResourceError, ToolError
from pydantic import BaseModel, Field

CITIES = {"Athens": (19, "clear"), "Bergen": (8, "rainy"), "Berlin": (10, "cloudy")}
City = Annotated[str, Field(description="Name of the city")]
Days = Annotated[int, Field(description="How many", ge=1, le=14)]
mcp = FastMCP("weather", version="1.0.0")


class Weather(BaseModel):
    city: str
    degrees: float
    sky: str


class Day(BaseModel):
    day: int
    degrees: float


class Forecast(BaseModel):
    city: str
    days: list[Day]


class Stay(BaseModel):
    days: Days = 3


def find(city: str, error: type[Exception] = ToolError) -> Weather:
    if city not in CITIES:
        raise error(f'There is no city "{city}".')
    degrees, sky = CITIES[city]
    return Weather(city=city, degrees=degrees, sky=sky)


@mcp.tool(annotations={"readOnlyHint": True})
def get_weather(city: City, unit: Literal["C", "F"] = "C") -> Weather:
    """The weather of a city."""
    found = find(city)
    if unit == "F":
        found.degrees = found.degrees * 1.8 + 32
    return found


@mcp.tool(annotations={"readOnlyHint": True})
def get_forecast(city: City, days: Days = 3) -> Forecast:
    """The next days in a city."""
    first = find(city).degrees
    days = [Day(day=day, degrees=first + day % 3) for day in range(1, days + 1)]
    return Forecast(city=city, days=days)


@mcp.tool
async def plan_trip(city: City, ctx: Context) -> str:
    """Plans a trip; asks how long."""
    found = find(city)
    answer = await ctx.elicit(f"How many days in {city}?", Stay)
    if answer.action != "accept":
        raise ToolError("Nobody said how long.")
    return f"{answer.data.days} days in {city}: {found.sky}, {found.degrees:g} °C."


@mcp.resource("weather://{city}", mime_type="application/json")
def weather(city: str) -> str:
    """The weather of a city."""
    return find(city, ResourceError).model_dump_json()


@mcp.prompt
def packing_list(city: City) -> str:
    """What to take along."""
    return f"What shall I pack for {city}, where it is {CITIES[city][1]}?"


@mcp.completion
def complete(ref, argument, context):
    return [city for city in CITIES if city.startswith(argument.value)]


if __name__ == "__main__":
    mcp.run(show_banner=False)
