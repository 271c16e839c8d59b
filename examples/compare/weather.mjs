// The weather of some cities on the TypeScript SDK; see ../../docs/compare.md.
import { completable, inputRequired, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const cities = { Athens: [19, 'clear'], Bergen: [8, 'rainy'], Berlin: [10, 'cloudy'] };
const city = z.string().describe('Name of the city');
const days = z.number().int().min(1).max(14).default(3).describe('How many');
const weather = z.object({ city: z.string(), degrees: z.number(), sky: z.string() });
const forecast = z.object({
    city: z.string(),
    days: z.array(z.object({ day: z.number().int(), degrees: z.number() })),
});
const annotations = { readOnlyHint: true };

function find(city) {
    if (!Object.hasOwn(cities, city)) {
        throw new Error(`There is no city "${city}".`);
    }
    const [degrees, sky] = cities[city];
    return { city, degrees, sky };
}

function say(structuredContent) {
    return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent };
}

function make() {
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    server.registerTool(
        'get_weather',
        {
            description: 'The weather of a city.',
            inputSchema: z.object({ city, unit: z.enum(['C', 'F']).default('C') }),
            outputSchema: weather,
            annotations,
        },
        async ({ city, unit }) => {
            const found = find(city);
            return say(unit === 'F' ? { ...found, degrees: found.degrees * 1.8 + 32 } : found);
        },
    );
    server.registerTool(
        'get_forecast',
        {
            description: 'The next days in a city.',
            inputSchema: z.object({ city, days }),
            outputSchema: forecast,
            annotations,
        },
        async ({ city, days }) => {
            const { degrees } = find(city);
            const next = Array.from({ length: days }, (_, i) => ({ day: i + 1, degrees: degrees + ((i + 1) % 3) }));
            return say({ city, days: next });
        },
    );
    server.registerTool(
        'plan_trip',
        { description: 'Plans a trip; asks how long.', inputSchema: z.object({ city }) },
        async ({ city }, { mcpReq }) => {
            const { degrees, sky } = find(city);
            const answer = mcpReq.inputResponses?.days;
            if (answer === undefined) {
                const properties = { days: { type: 'integer', minimum: 1, maximum: 14, default: 3 } };
                const form = { mode: 'form', message: `How many days in ${city}?`, requestedSchema: { type: 'object', properties } };
                return inputRequired({ inputRequests: { days: inputRequired.elicit(form) } });
            }
            if (answer.action !== 'accept') {
                throw new Error('Nobody said how long.');
            }
            const text = `${answer.content?.days ?? 3} days in ${city}: ${sky}, ${degrees} °C.`;
            return { content: [{ type: 'text', text }] };
        },
    );
    server.registerResource(
        'weather',
        new ResourceTemplate('weather://{city}', { list: undefined }),
        { description: 'The weather of a city.', mimeType: 'application/json' },
        async (uri, { city }) => ({
            contents: [{ uri: String(uri), mimeType: 'application/json', text: JSON.stringify(find(city)) }],
        }),
    );
    const names = (begun) => Object.keys(cities).filter((name) => name.startsWith(begun ?? ''));
    server.registerPrompt(
        'packing_list',
        {
            description: 'What to take along.',
            argsSchema: z.object({ city: completable(city, names) }),
        },
        ({ city }) => {
            const text = `What shall I pack for ${city}, where it is ${find(city).sky}?`;
            return { messages: [{ role: 'user', content: { type: 'text', text } }] };
        },
    );
    return server;
}

serveStdio(make);
