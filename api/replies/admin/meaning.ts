import { z } from 'zod';
import { remedyCodes } from '../../../shared/domain/admin/remedies.ts';
import { component } from '../common.ts';

const values =
  'Values in the reason. A reason or a hint among them is an object with its own code and values.';

/** Meaning of a reason, as a code with values. */
export const meaning = component(
  'Meaning',
  z
    .strictObject({
      code: z.string().describe('Stable code; `other` if the reason is not in the catalogue.'),
      params: z.record(z.string(), z.unknown()).describe(values),
    })
    .describe('What a reason of a gateway or of the service means.'),
);

/** What an operator can do about a cause. */
export const remedy = z.strictObject({ code: z.enum(remedyCodes) });
