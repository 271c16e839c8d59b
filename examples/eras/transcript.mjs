// Everybody writes what he does and sees into one file, in the order in which it happens.
import { appendFileSync } from 'node:fs';

export function tell(who, text) {
    appendFileSync(process.env.TRANSCRIPT, `${who.padEnd(9)}${text}\n`);
}

const questions = (requests) => Object.values(requests ?? {})
    .map(({ method, params }) => `${method} "${params.message}"`).join(', ');

// One message on a client's wire, in a line; undefined: it is not part of the story.
function line(message) {
    const { method, params, result, error } = message;
    if (method === 'initialize') return `initialize, revision ${params.protocolVersion}`;
    if (method === 'tools/call') {
        const again = params.inputResponses === undefined ? ''
            : `, again: with ${JSON.stringify(params.inputResponses)} and the requestState`;
        return `tools/call ${params.name} ${JSON.stringify(params.arguments)}${again}`;
    }
    if (method === 'elicitation/create') return `elicitation/create "${params.message}"`;
    if (error !== undefined) return `error ${error.code}: ${error.message}`;
    if (result?.resultType === 'input_required') return `input_required: ${questions(result.inputRequests)}`;
    if (result?.content !== undefined && Array.isArray(result.content)) return `result: ${result.content[0].text}`;
    if (result?.action !== undefined) return `answer: ${result.action} ${JSON.stringify(result.content)}`;
    return undefined;
}

// Connects, and tells what goes over the transport.
export async function connectAndWatch(client, transport) {
    const send = transport.send.bind(transport);
    transport.send = (message, ...rest) => {
        const text = line(message);
        if (text !== undefined) tell('client', `-> ${text}`);
        return send(message, ...rest);
    };
    await client.connect(transport);
    const deliver = transport.onmessage;
    transport.onmessage = (message, ...rest) => {
        const text = line(message);
        if (text !== undefined) tell('client', `<- ${text}`);
        return deliver.call(transport, message, ...rest);
    };
}
