import { z } from 'zod';
import { pushStates } from '../../../shared/domain/pushes/record.ts';
import { component, count, timestamp } from '../common.ts';
import { installation, userPart } from '../objects.ts';
import { deviceExplanation, deviceRoute } from './pushes.ts';

export const deviceDetail = component(
  'DeviceDetail',
  z.strictObject({
    installation,
    route: deviceRoute.describe('How a push would currently reach the device.'),
    isValid: z.boolean().describe('`valid` of the installation.'),
    isFresh: z.boolean().describe('Whether it was saved within `installationValidityDays`.'),
    online: z
      .strictObject({
        since: timestamp.describe('Time of the login.'),
        node: z.string().describe('Api process that has the connection.'),
      })
      .nullable()
      .describe('Session at the device channel.'),
    inbox: count.describe(
      'Messages that wait for it on the device channel. At most 1000 are counted.',
    ),
    badge: z.int().nullable().describe('Stored badge. Null without a badge.'),
    invalidTokenNotice: z
      .strictObject({
        connector: z.string().describe('Connector of the gateway.'),
        at: timestamp.describe('Time of the receipt.'),
        isSure: z.boolean().describe('Whether the receipt proves the end of the token.'),
      })
      .nullable()
      .describe('Present if a receipt reported the token as invalid.'),
  }),
);

const { isMatched, outcome, at, sentence, texts } = deviceExplanation.shape;

export const devicePush = component(
  'DevicePush',
  z.strictObject({
    objectId: z.string().describe('Id of the push record.'),
    createdAt: timestamp.describe('Time of the creation.'),
    state: z.enum(pushStates).describe('State of the push.'),
    isMatched,
    outcome,
    at,
    sentence,
    texts,
  }),
);

export const searchHit = component(
  'SearchHit',
  z.strictObject({
    kind: z.enum(['app', 'push', 'installation', 'user']).describe('Kind of the object.'),
    appId: z.string().describe('Id of the app.'),
    id: z.string().describe('Id of the object.'),
    title: z.string().describe('Name or other text of the object.'),
  }),
);

export const appName = component(
  'AppName',
  z.strictObject({
    appId: z.string().describe('Id of the app.'),
    name: z.string().describe('Name of the app.'),
  }),
);

export const deletedCount = component(
  'DeletedCount',
  z.strictObject({
    deleted: count.describe(
      'Installations that still matched the condition when they were deleted.',
    ),
  }),
);

export const userDetail = component(
  'UserDetail',
  z.strictObject({
    user: userPart,
    identities: z
      .array(
        z.strictObject({
          platform: z.string().describe('Name of the platform.'),
          uid: z.string().describe('Id of the user at the platform.'),
        }),
      )
      .describe('Third-party accounts, including UnionIDs.'),
    hasPassword: z.boolean().describe('Whether the user has a password.'),
    lock: z
      .strictObject({
        failures: count.describe('Failed logins of the last 15 minutes.'),
        lockedUntil: timestamp.nullable().describe('Logins are refused until then.'),
      })
      .describe('Lock after failed logins.'),
  }),
);
