import { z } from 'zod';
import { count } from '../common.ts';
import { component } from '../component.ts';
import { acceptedPush } from '../pushes.ts';

const digest = z.string().describe('Binds body and number; `X-Carillon-Explained` of the push.');

export const sentPush = component(
  'SentPush',
  z.strictObject({
    ...acceptedPush.shape,
    status: z.string().describe('As in the record: `scheduled`, `in-queue`, `done`.'),
  }),
);

export const movedAudience = component(
  'MovedAudience',
  z.strictObject({
    code: z.literal(409),
    error: z.string(),
    devices: count.describe('Recipients of now.'),
    explained: count.nullable().describe('Recipients of the dry run; null where it was not of this body.'),
    digest,
  }),
);
