import { z } from 'zod';
import { component, timestamp } from '../common.ts';

const reviewed = {
  name: z.string(),
  status: z.enum(['approved', 'pending']),
  createdAt: timestamp,
  updatedAt: timestamp,
};

const templateText = { type: z.enum(['verification', 'notification']), text: z.string() };

export const smsTemplate = component(
  'SmsTemplate',
  z.strictObject({
    ...reviewed,
    ...templateText,
    active: z
      .strictObject(templateText)
      .nullable()
      .describe('Text in use until the one above is approved; null if no text is approved.'),
  }),
);

export const smsSignature = component('SmsSignature', z.strictObject(reviewed));
