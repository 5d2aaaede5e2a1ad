import { z } from 'zod';
import { component } from './component.ts';

export const captcha = component(
  'Captcha',
  z.strictObject({ captcha_token: z.string(), captcha_url: z.url().describe('Address of the image.') }),
);

export const verifiedCaptcha = component('VerifiedCaptcha', z.strictObject({ validate_token: z.string() }));
