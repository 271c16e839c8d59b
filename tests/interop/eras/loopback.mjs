// Loaded before server-everything, whose HTTP entries would listen on every address of the machine.
import { Server } from 'node:net';

const listen = Server.prototype.listen;
Server.prototype.listen = function onLoopback(port, ...rest) {
    return listen.call(this, Number(port), '127.0.0.1', ...rest.filter((one) => typeof one === 'function'));
};
