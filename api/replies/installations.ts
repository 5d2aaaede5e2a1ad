import { z } from 'zod';
import { stored, updated } from './common.ts';
import { component } from './component.ts';

const ofDevice = {
  deviceType: z.string(),
  deviceToken: z.string().optional(),
  installationId: z.string().optional(),
  vendor: z.string().optional().describe('As it was stored: a wire name or a neutral one.'),
  registrationId: z.string().optional(),
  deviceProfile: z.string().optional(),
  apnsTopic: z.string().optional().describe('`pgwTopic` where it was stored under that name.'),
  pgwTopic: z.string().optional(),
  apnsTeamId: z.string().optional().describe('`pgwTeamId` where it was stored under that name.'),
  pgwTeamId: z.string().optional(),
  channels: z.array(z.string()).optional(),
  valid: z.boolean(),
  timeZone: z.string().optional(),
  badge: z.number().optional(),
};

export const installation = component(
  'Installation',
  z
    .looseObject({ ...ofDevice, ...stored })
    .describe('Installation of an app on a device, with members of the app’s own.'),
);

export const installationPart = component(
  'InstallationPart',
  z
    .looseObject({ ...ofDevice, ...stored })
    .partial()
    .describe('Installation, or those of its members that `keys` names; an unknown id is an empty object.'),
);

/** Reply to a registration without `fetchWhenSave=true`. */
export const savedInstallation = component(
  'SavedInstallation',
  z.strictObject({ ...stored, updatedAt: stored.updatedAt.optional() }),
);

export const updatedInstallation = component(
  'UpdatedInstallation',
  z.looseObject(ofDevice).partial().extend(updated),
);
