import { AsyncLocalStorage } from 'node:async_hooks';

const lanes = new AsyncLocalStorage<string>();

/**
 * Runs `work` for an app: connections that it takes of a pool with `turns`, at any depth, count as this app's. Work
 * outside of every lane shares one.
 */
export const inLane = <T>(appId: string, work: () => T): T => lanes.run(appId, work);

export const currentLane = (): string => lanes.getStore() ?? '';
