import { databaseScenes } from './database-scenes.ts';
import { deliveryScenes } from './delivery-scenes.ts';
import type { Scene } from './kit.ts';
import { processScenes } from './process-scenes.ts';

/** All faults, in the order in which they disturb each other least. */
export const scenes: readonly Scene[] = [...deliveryScenes, ...processScenes, ...databaseScenes];

/** Alerts whose fault cannot be made within a minute on one machine; `test/ops/alerts.test.ts` fires them by their series. */
export const notMade: Readonly<Record<string, string>> = {
  CarillonVersionsMixed:
    'needs another version that is installed: `npm test -- --upgrade` runs the last release beside this one',
  CarillonDutyStands: 'the threshold is half an hour, measured by the dispatcher',
  CarillonStandbyLag: 'needs a standby that stands for 30 s: test/system/standby.test.ts lets one stand',
  CarillonReadingOld: 'the threshold is two minutes, measured by the processes',
};
