import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { migrate } from '../../../shared/queue/migrate.ts';

parentPort?.postMessage(await migrate(z.string().parse(workerData)));
