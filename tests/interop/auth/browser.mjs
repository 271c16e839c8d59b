// A person's browser: keeps cookies, follows redirects, and submits the forms of the provider's and the gateway's pages.
export class Browser {
    cookies = new Map();

    async #send(url, options = {}) {
        const response = await fetch(url, { redirect: 'manual', ...options,
            headers: { cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '), ...options.headers } });
        for (const line of response.headers.getSetCookie()) {
            const [pair] = line.split(';');
            this.cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
        }
        return response;
    }

    // Where it ends: a page without a redirect or a form. `text` is what that page says.
    async open(url) {
        let response = await this.#send(url);
        for (let hop = 0; hop < 20; hop++) {
            if (response.headers.has('location')) {
                url = new URL(response.headers.get('location'), url).href;
                response = await this.#send(url);
                continue;
            }
            const text = await response.text();
            const form = /<form[^>]*action="([^"]*)"/.exec(text);
            if (!form) return { url, status: response.status, text };
            const fields = [...text.matchAll(/<input[^>]*name="([^"]*)"[^>]*value="([^"]*)"/g)].map(([, name, value]) => [name, value.replaceAll('&amp;', '&')]);
            url = new URL(form[1], url).href;
            response = await this.#send(url, { method: 'POST', body: new URLSearchParams([...fields, ['confirm', 'yes'],
                ['decision', 'allow']]) });
        }
        throw new Error(`no end of redirects at ${url}`);
    }
}
