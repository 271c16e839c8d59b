// A client of 2026-07-28 and of nothing else: no handshake, no session, and nobody may send it requests.
//
//     modern-client.mjs URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { connectAndWatch } from './transcript.mjs';

const client = new Client({ name: 'client-of-2026', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } });
client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { day: 'Friday' } }));
await connectAndWatch(client, new StreamableHTTPClientTransport(new URL(process.argv[2])));
await client.callTool({ name: 'book', arguments: { people: 2 } });
await client.close();
