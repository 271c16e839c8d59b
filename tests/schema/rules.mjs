// What a message of a revision has to be: the envelope of the published schema, and for its method the
// request, notification or result that the schema names.
import { readFileSync } from 'node:fs';

import Ajv7 from 'ajv';
import Ajv2020 from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

export class Rules {
    constructor(folder, revision) {
        this.revision = revision;
        const schema = JSON.parse(readFileSync(`${folder}/${revision}/schema.json`, 'utf8'));
        const key = schema.definitions ? 'definitions' : '$defs';
        const Ajv = schema.$schema.includes('draft-07') ? Ajv7.default ?? Ajv7 : Ajv2020.default ?? Ajv2020;
        this.ajv = new Ajv({ strict: false, allErrors: true });
        (formats.default ?? formats)(this.ajv);
        this.ajv.addSchema(schema, 'mcp');
        this.key = key;
        this.definitions = schema[key];
        this.byMethod = new Map();
        for (const [name, one] of Object.entries(this.definitions)) {
            const method = one.properties?.method?.const;
            if (method && !/^(Client|Server)/.test(name)) this.byMethod.set(method, name);
        }
        this.seen = new Map(); // definition -> how many messages
    }

    #is(name, value, where) {
        this.seen.set(name, (this.seen.get(name) ?? 0) + 1);
        const validate = this.ajv.getSchema(`mcp#/${this.key}/${name}`);
        if (!validate) return [`${where}: the schema has no ${name}`];
        return validate(value) ? [] : validate.errors.map((error) =>
            `${where}: not a ${name}: ${error.instancePath || '/'} ${error.message}`);
    }

    #defined(...names) {
        return names.find((name) => this.definitions[name]);
    }

    // The faults of `message`; `asked`: the method that a response answers.
    check(message, asked) {
        const where = JSON.stringify(message).slice(0, 300);
        // JSON-RPC 2.0 section 5 wants the id null where it could not be read; the schemas know no such id.
        if (message.error && message.id === null) return this.check({ ...message, id: 0 });
        if (Array.isArray(message)) return [`${where}: a batch`];
        const faults = this.#is('JSONRPCMessage', message, where);
        if (message.method) {
            const name = this.byMethod.get(message.method);
            if (!name) return [...faults, `${where}: ${this.revision} has no ${message.method}`];
            return [...faults, ...this.#is(name, message, where)];
        }
        if (message.error) return [...faults, ...this.#error(message, where)];
        if (!asked) return [...faults, `${where}: it answers nothing that was asked`];
        const request = this.byMethod.get(asked);
        const result = request?.replace(/Request$/, 'Result');
        const response = `${result}Response`;
        return [
            ...faults,
            ...this.#is(this.#defined('JSONRPCResultResponse', 'JSONRPCResponse'), message, where),
            ...this.#is(this.definitions[result] ? result : 'EmptyResult', message.result, where),
            ...(this.definitions[response] ? this.#is(response, message, where) : []),
        ];
    }

    #error(message, where) {
        const special = { '-32020': 'HeaderMismatchError',
            '-32021': 'MissingRequiredClientCapabilityError', '-32022': 'UnsupportedProtocolVersionError' };
        const name = special[message.error.code];
        const faults = this.#is(this.#defined('JSONRPCErrorResponse', 'JSONRPCError'), message, where);
        if (!name || !this.definitions[name]) return faults;
        // Some definitions are of the error object, some of the whole response.
        const whole = Boolean(this.definitions[name].properties?.error);
        return [...faults, ...this.#is(name, whole ? message : message.error, where)];
    }
}
