// One long session with a server, as a client of one revision: everything that the fixture
// (tests/conformance/server.c) can be asked for, right and wrong. Writes down what came back.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const META = 'io.modelcontextprotocol/';

export class Session {
    // `announced`: which changes the server tells of (a gateway tells of none when its lists stay as they were).
    constructor(command, revision, announced) {
        this.revision = revision;
        this.announced = announced;
        this.isModern = revision >= '2026';
        this.asked = new Map();
        this.got = []; // { message, asked }
        this.waiting = [];
        this.next = 1;
        this.child = spawn(command[0], command.slice(1), {
            stdio: ['pipe', 'pipe', 'ignore'] });
        this.ended = new Promise((resolve) => this.child.on('exit', resolve));
        this.child.stdin.on('error', () => {});
        createInterface({ input: this.child.stdout }).on('line', (line) => this.#take(JSON.parse(line)));
    }

    #take(message) {
        this.got.push({ message, asked: message.method ? undefined : this.asked.get(message.id) });
        this.waiting = this.waiting.filter((one) => {
            if (!one.test(message)) return true;
            one.resolve(message);
            return false;
        });
    }

    until(what, test) {
        const timer = new Promise((_, reject) => {
            setTimeout(() => reject(new Error(`${this.revision}: it did not come in 20 s: ${what}`)), 20000).unref();
        });
        return Promise.race([new Promise((resolve) => { this.waiting.push({ test, resolve }); }), timer]);
    }

    write(message) {
        this.child.stdin.write(typeof message === 'string' ? `${message}\n` : `${JSON.stringify(message)}\n`);
    }

    params(params, meta, version = this.revision) {
        const all = { ...(this.isModern ? { [`${META}protocolVersion`]: version,
            [`${META}clientCapabilities`]: {}, [`${META}clientInfo`]: { name: 'rules', version: '1' } } : {}), ...meta };
        return Object.keys(all).length > 0 ? { ...params, _meta: all } : params;
    }

    begin(method, params = {}, meta = {}, version) {
        const id = this.next++;
        this.asked.set(id, method);
        const answer = this.until(method, (message) => message.id === id && !message.method);
        answer.catch(() => {}); // a cancelled call has none
        this.write({ jsonrpc: '2.0', id, method, params: this.params(params, meta, version) });
        return { id, answer };
    }

    ask(method, params, meta, version) {
        return this.begin(method, params, meta, version).answer;
    }

    notify(method, params) {
        this.write({ jsonrpc: '2.0', method, params });
    }

    call(name, args = {}, meta) {
        return this.ask('tools/call', { name, arguments: args }, meta);
    }

    // Asks until the answer satisfies: a gateway's servers take a moment.
    async patiently(method, params, good) {
        for (let i = 0; ; i++) {
            const answer = await this.ask(method, params);
            if (good(answer) || i === 100) return answer;
            await new Promise((resolve) => { setTimeout(resolve, 50); });
        }
    }

    async open() {
        if (this.isModern) {
            await this.ask('server/discover');
            await this.ask('server/discover', {}, {}, '1999-01-01');
            return;
        }
        await this.ask('initialize', { protocolVersion: this.revision, capabilities: { roots: { listChanged: true } },
            clientInfo: { name: 'rules', version: '1' } });
        this.notify('notifications/initialized');
        await this.ask('ping');
        await this.ask('logging/setLevel', { level: 'debug' });
        await this.ask('logging/setLevel', { level: 'loud' });
    }

    async tools() {
        const has = (answer) => (answer.result?.tools?.length ?? 0) > 0;
        await this.patiently('tools/list', {}, has);
        await this.ask('tools/list', { cursor: 'nonsense' });
        for (const name of ['test_simple_text', 'test_image_content', 'test_audio_content', 'test_embedded_resource',
            'test_multiple_content_types', 'test_every_content', 'test_error_handling', 'test_missing_capability', 'absent']) {
            await this.call(name);
        }
        await this.call('test_x_mcp_header', { region: 7 });
        await this.ask('tools/call', { arguments: {} });
        const talks = { progressToken: 'token', ...(this.isModern ? { [`${META}logLevel`]: 'debug' } : {}) };
        await this.call('test_tool_with_progress', {}, { ...talks, progressToken: 7 });
        await this.call('test_tool_with_logging', {}, talks);
        const { id } = this.begin('tools/call', { name: 'test_tool_with_progress', arguments: {} }, talks);
        await this.until('progress', (message) => message.method === 'notifications/progress');
        this.notify('notifications/cancelled', { requestId: id, reason: 'enough' });
    }

    async resources() {
        await this.ask('resources/list');
        await this.ask('resources/templates/list');
        for (const uri of ['test://static-text', 'test://static-binary', 'test://template/1%202/data', 'test://absent',
            'test://template/%22/data']) {
            await this.ask('resources/read', { uri });
        }
        await this.ask('resources/read', {});
    }

    async prompts() {
        await this.ask('prompts/list');
        await this.ask('prompts/get', { name: 'test_simple_prompt' });
        await this.ask('prompts/get', { name: 'test_prompt_with_arguments', arguments: { arg1: 'a', arg2: 'b' } });
        await this.ask('prompts/get', { name: 'test_prompt_with_arguments', arguments: {} });
        await this.ask('prompts/get', { name: 'test_prompt_with_embedded_resource', arguments: { resourceUri: 'test://x' } });
        await this.ask('prompts/get', { name: 'test_prompt_with_image' });
        await this.ask('prompts/get', { name: 'absent' });
        const argument = { name: 'arg1', value: 'pa' };
        await this.ask('completion/complete', { ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' }, argument });
        await this.ask('completion/complete', { ref: { type: 'ref/resource', uri: 'test://template/{id}/data' },
            argument: { name: 'id', value: '' } });
        await this.ask('completion/complete', { ref: { type: 'ref/prompt', name: 'absent' }, argument });
    }

    async changes() {
        const uri = 'test://watched-resource';
        const listen = this.isModern ? this.begin('subscriptions/listen', { notifications: {
            toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true,
            resourceSubscriptions: [uri] } }) : null;
        if (listen) {
            await this.until('acknowledged', (message) => message.method === 'notifications/subscriptions/acknowledged');
        } else {
            await this.ask('resources/subscribe', { uri });
            await this.ask('resources/subscribe', { uri: 'absent://there' });
        }
        for (const [tool, told] of [['test_trigger_tool_change', 'tools/list_changed'],
            ['test_trigger_prompt_change', 'prompts/list_changed'], ['test_trigger_resource_change', 'resources/updated']]) {
            const heard = this.announced.includes(told)
                ? this.until(told, (message) => message.method === `notifications/${told}`) : null;
            await this.call(tool);
            await heard;
        }
        if (listen) {
            this.notify('notifications/cancelled', { requestId: listen.id });
            return;
        }
        this.notify('notifications/roots/list_changed');
        await this.ask('resources/unsubscribe', { uri });
    }

    async nonsense() {
        for (const [line, what] of [['{"jsonrpc":"2.0","id":"\u{1F600}"', 'not JSON'], ['7', 'a number'],
            ['{"jsonrpc":"1.0","id":900,"method":"ping"}', 'another version'], ['{"id":901,"method":7}', 'no method']]) {
            const answer = this.until(what, (message) => message.error && !this.asked.has(message.id));
            this.write(line);
            await answer;
        }
        await this.ask('nobody/knows');
    }

    async run() {
        await this.open();
        await this.tools();
        await this.resources();
        await this.prompts();
        await this.changes();
        await this.nonsense();
        this.child.stdin.end();
        await this.ended;
        return this.got;
    }
}
