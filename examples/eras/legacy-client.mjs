// A client of 2025-06-18: an SDK of that year, which has a session and answers what its server asks.
//
//     legacy-client.mjs URL
import { Client } from 'sdk-of-2025-06-18/client/index.js';
import { StreamableHTTPClientTransport } from 'sdk-of-2025-06-18/client/streamableHttp.js';
import { ElicitRequestSchema } from 'sdk-of-2025-06-18/types.js';

import { connectAndWatch } from './transcript.mjs';

const client = new Client({ name: 'client-of-2025', version: '1.0.0' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { day: 'Friday' } }));
await connectAndWatch(client, new StreamableHTTPClientTransport(new URL(process.argv[2])));
await client.callTool({ name: 'book', arguments: { people: 2 } });
await client.close();
