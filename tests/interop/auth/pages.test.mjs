// The gateway's pages in a real browser: login and logout, the consent page of its authorization server, and the
// client of the TypeScript SDK, which comes in by it. Chromium is Debian's; without it these tests are skipped.
import assert from 'node:assert/strict';
import { accessSync } from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';

import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { chromium } from 'playwright-core';

import { startProxy } from './proxy.mjs';

const program = '/usr/bin/chromium';
let missing = false;
try {
    accessSync(program);
} catch {
    missing = `${program} is not installed`;
}

let gateway, base, browser, elsewhere;
const received = []; // what came to the client's redirect, and to the page of another site

before(async () => {
    if (missing) return;
    gateway = await startProxy();
    ({ base } = gateway);
    elsewhere = http.createServer((request, response) => {
        received.push(request.url);
        response.setHeader('content-type', 'text/html');
        response.end(elsewhere.page ?? 'done');
    });
    await new Promise((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
});
after(async () => {
    await browser?.close();
    elsewhere?.close();
    await gateway?.stop();
});

// A person with a browser of their own; what the browser complains about.
async function person() {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.complaints = [];
    page.on('console', (message) => { if (message.type() === 'error') page.complaints.push(message.text()); });
    page.on('pageerror', (error) => page.complaints.push(String(error)));
    return page;
}

test('a person logs in and out', { skip: missing }, async () => {
    const page = await person();
    await page.goto(`${base}/login`);
    assert.equal(page.url(), `${base}/login`);
    assert.match(await page.textContent('dl'), /ann/);
    const [cookie, ...others] = (await page.context().cookies()).filter(({ name }) => name.startsWith('patchbay'));
    assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path, others.length], [true, 'Lax', '/', 0]);
    assert.equal(await page.evaluate('document.cookie'), '');
    await page.click('text=Log out');
    assert.match(await page.textContent('main'), /You are logged out/);
    assert.deepEqual((await page.context().cookies()).filter(({ name }) => name.startsWith('patchbay')), []);
    assert.deepEqual(page.complaints, []);
});

// What the SDK keeps, and the person that it sends to the page.
function keeper(redirectUrl, page, decide) {
    const kept = {};
    return { kept, redirectUrl, clientMetadata: { client_name: 'The <i>SDK</i>', redirect_uris: [redirectUrl], scope: 'weather:read' },
        clientInformation: () => kept.client, saveClientInformation: (value) => { kept.client = value; },
        tokens: () => kept.tokens, saveTokens: (value) => { kept.tokens = value; },
        codeVerifier: () => kept.verifier, saveCodeVerifier: (value) => { kept.verifier = value; },
        redirectToAuthorization: async (url) => { kept.url = url.href; await decide(page, url.href); } };
}

const lastCode = () => new URL(received.filter((url) => url.startsWith('/callback')).at(-1), 'http://x').searchParams;

test('the TypeScript SDK comes in after the person allowed it', { skip: missing }, async () => {
    const page = await person();
    const redirect = `http://127.0.0.1:${elsewhere.address().port}/callback`;
    const store = keeper(redirect, page, async (at, url) => {
        await at.goto(url); // by the provider, and back
        const shown = await at.textContent('main');
        assert.match(shown, /Allow access\?/);
        assert.match(shown, /The <i>SDK<\/i>/);
        assert.match(shown, new RegExp(`127\\.0\\.0\\.1:${elsewhere.address().port}`));
        await at.click('button:has-text("Allow")');
        await at.waitForURL(/callback/);
    });
    const endpoint = new URL(`${base}/mcp`);
    const client = new Client({ name: 'c', version: '1' });
    const first = new StreamableHTTPClientTransport(endpoint, { authProvider: store });
    await assert.rejects(client.connect(first), UnauthorizedError);
    assert.equal(lastCode().get('iss'), base);
    await first.finishAuth(lastCode().get('code'));
    assert.match(store.kept.tokens.access_token, /^pbt_/);
    assert.equal(store.kept.tokens.scope, 'weather:read');
    await client.connect(new StreamableHTTPClientTransport(endpoint, { authProvider: store }));
    assert.ok((await client.listTools()).tools.length > 0);
    await client.close();
    assert.deepEqual(page.complaints, []);
    // the same person, the same client, the provider silent: asked again, and this time it is no
    await page.goto(store.kept.url);
    await page.click('button:has-text("Deny")');
    await page.waitForURL(/callback/);
    assert.equal(lastCode().get('error'), 'access_denied');
    assert.equal(lastCode().get('code'), null);
    // a refresh is no event
    store.kept.tokens.access_token = `${store.kept.tokens.access_token.slice(0, -1)}x`;
    const again = new Client({ name: 'c', version: '1' });
    await again.connect(new StreamableHTTPClientTransport(endpoint, { authProvider: store }));
    assert.ok((await again.listTools()).tools.length > 0);
    await again.close();
});

test('another site neither frames the page nor answers for the person', { skip: missing }, async () => {
    const page = await person();
    await page.goto(`${base}/login`);
    elsewhere.page = `<iframe src="${base}/login"></iframe>
        <form method="post" action="${base}/logout"><input name="token" value="x"><button>go</button></form>`;
    // another port is another origin, but of one site: the cookie comes along
    await page.goto(`http://127.0.0.1:${elsewhere.address().port}/evil`);
    const frame = page.frames().find((one) => one !== page.mainFrame());
    assert.doesNotMatch(await frame.content(), /Logged in|Log out/);
    assert.ok(page.complaints.some((text) => /frame-ancestors|X-Frame-Options/i.test(text)), page.complaints.join('\n'));
    // with the cookie the form's token is wrong; from another site there is no cookie
    for (const [name, status] of [['127.0.0.1', 403], ['localhost', 200]]) {
        await page.goto(`http://${name}:${elsewhere.address().port}/evil`);
        const [answer] = await Promise.all([page.waitForResponse(`${base}/logout`), page.click('button')]);
        assert.equal(answer.status(), status);
    }
    elsewhere.page = undefined;
    await page.goto(`${base}/login`);
    assert.match(await page.textContent('dl'), /ann/);
});

test('no secret is in the log', { skip: missing }, () => {
    assert.doesNotMatch(gateway.log, /eyJ|pb[tro]_/);
});
