/** Runs one client of the comparison in its own process, to measure its CPU time alone. Started with an IPC channel. */
import { once } from 'node:events';
import { clients } from './clients.ts';
import { order } from './shape.ts';

const [message] = await once(process, 'message');
const { client, warmUp, requests, ...target } = order.parse(message);
const open = clients[client];
if (!open) throw new Error(`there is no client named ${client}`);
const running = await open(target);
await running.send(warmUp);
const startedAt = performance.now();
const before = process.cpuUsage();
await running.send(requests);
const { user, system } = process.cpuUsage(before);
const seconds = (performance.now() - startedAt) / 1000;
process.send?.({ seconds, cpuSeconds: (user + system) / 1_000_000 }, undefined, undefined, () =>
  process.exit(0),
);
