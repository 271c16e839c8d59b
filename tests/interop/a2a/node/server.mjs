// An agent on one generation of the JavaScript SDK: server.mjs GENERATION PORT [GRPC-PORT]
// GENERATION: 1.0 (also what it has of 0.3), 0.3, 0.2.
const [generation, port, grpcPort] = process.argv.slice(2);
console.error = console.warn = console.info = console.log = () => {};
const { serve } = await import(`./server_${generation.replace('.', '_')}.mjs`);
await serve(Number(port), Number(grpcPort ?? 0));
