// One call, at least, of every tool of the servers from npm, in an order that leaves them as they were.
// A step is [tool, arguments, tidy?]; tidy(text) removes from the answer what two runs cannot share.
import { join } from 'node:path';

// An access time moves when a file is read, the others when the files are put back.
const times = (text) => text.replace(/(created|modified|accessed): [^\\"\n]*/g, '$1: -');
// The order of variables is the starter's affair.
const environment = (text) => text.split('\\n').map((line) => line.replace(/,$/, '')).sort().join('\n');

export function calls(at, unique) {
    const file = (...parts) => join(at, 'files', ...parts);
    const entity = (name) => ({ name, entityType: 'kind', observations: ['first', 'zweite ☃'] });
    const relation = { from: 'Ada', to: 'Grace', relationType: 'knows' };
    const gzip = { name: `${unique}.gz`, data: 'data:text/plain,hello%20world' };
    const tidyName = (text) => text.replaceAll(unique, 'unique');
    return {
        everything: [
            ['echo', { message: 'héllo \u{1F600} "quoted" \\ \u0001 \u2028' }],
            ['echo', { message: '' }],
            ['echo', { message: 'x'.repeat(100000) }],
            ['get-annotated-message', { messageType: 'error', includeImage: true }],
            ['get-annotated-message', { messageType: 'debug' }],
            ['get-env', {}, environment],
            ['get-resource-links', { count: 4 }],
            // dynamic resources say when they were made
            ['get-resource-reference', { resourceType: 'Text', resourceId: 1 }, (text) => text.replace(/\d+:\d+:\d+ [AP]M/g, '-')],
            ['get-structured-content', { location: 'Chicago' }],
            ['get-sum', { a: 2, b: 40.5 }],
            ['get-sum', { a: 'no', b: 'numbers' }], // refused by the server
            ['get-tiny-image', {}],
            ['gzip-file-as-resource', { ...gzip, outputType: 'resourceLink' }, tidyName],
            ['gzip-file-as-resource', { ...gzip, outputType: 'resource' }, tidyName],
            ['toggle-simulated-logging', {}], // on, and off again
            ['toggle-simulated-logging', {}],
            ['toggle-subscriber-updates', {}],
            ['toggle-subscriber-updates', {}],
            ['trigger-long-running-operation', { duration: 0.1, steps: 2 }],
        ],
        filesystem: [
            ['list_allowed_directories', {}],
            ['read_file', { path: file('a.txt') }],
            ['read_text_file', { path: file('a.txt'), head: 2 }],
            ['read_text_file', { path: file('unicode é.txt') }],
            ['read_media_file', { path: file('pixel.png') }],
            ['read_multiple_files', { paths: [file('a.txt'), file('sub', 'b.md'), file('missing')] }],
            ['write_file', { path: file('new.txt'), content: 'new ☃\n' }],
            ['edit_file', { path: file('a.txt'), edits: [{ oldText: 'two', newText: '2' }], dryRun: true }],
            ['edit_file', { path: file('a.txt'), edits: [{ oldText: 'two', newText: '2' }] }],
            ['create_directory', { path: file('made', 'here') }],
            ['list_directory', { path: file() }],
            ['list_directory_with_sizes', { path: file(), sortBy: 'size' }],
            ['directory_tree', { path: file() }],
            ['move_file', { source: file('new.txt'), destination: file('moved.txt') }],
            ['search_files', { path: file(), pattern: '**/*.md' }],
            ['get_file_info', { path: file('sub', 'b.md') }, times],
            ['read_file', { path: '/etc/hostname' }], // outside: refused by the server
        ],
        memory: [
            ['create_entities', { entities: [entity('Ada'), entity('Grace')] }],
            ['create_relations', { relations: [relation] }],
            ['add_observations', { observations: [{ entityName: 'Ada', contents: ['third'] }] }],
            ['read_graph', {}],
            ['search_nodes', { query: 'zweite' }],
            ['open_nodes', { names: ['Ada', 'nobody'] }],
            ['delete_observations', { deletions: [{ entityName: 'Ada', observations: ['first'] }] }],
            ['delete_relations', { relations: [relation] }],
            ['read_graph', {}],
            ['delete_entities', { entityNames: ['Ada', 'Grace'] }],
            ['read_graph', {}],
        ],
    };
}

// Tools that the clients themselves refuse to call plainly, which are called byte for byte instead; and those
// that ask, which tests/interop/eras calls.
export const onlyRaw = {
    everything: ['simulate-research-query', 'trigger-elicitation-request', 'trigger-url-elicitation', 'trigger-sampling-request',
        'get-roots-list'],
    filesystem: [], memory: [],
};

// What a call came to, as one text: the content as it stands, or the error.
export async function outcome(client, name, args, tidy = (text) => text) {
    let came;
    try {
        const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
        came = { content, structuredContent, isError: isError ?? false };
    } catch (error) {
        came = { code: error.code, message: error.message };
    }
    return tidy(JSON.stringify(came));
}
