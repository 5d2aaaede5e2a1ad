import { databaseScenes } from './database-scenes.ts';
import { deliveryScenes } from './delivery-scenes.ts';
import { processScenes } from './process-scenes.ts';
import type { Scene } from './stage.ts';

/** All scenes, in an order in which they disturb each other least. */
export const scenes: readonly Scene[] = [...deliveryScenes, ...processScenes, ...databaseScenes];
