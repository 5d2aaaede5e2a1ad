import { issue, userIdOf } from '../../../ops/sandbox/kit/certificates.ts';

/**
 * Returns APNs credentials with a certificate that expires at the given time (epoch milliseconds).
 */
export async function certificateUntil(endMs: number) {
  const { certificate, privateKey } = issue({
    subject: [
      ...userIdOf('com.example.app'),
      { shortName: 'CN', value: 'Apple Push Services: com.example.app' },
    ],
    notBeforeMs: endMs - 365 * 86_400_000,
    notAfterMs: endMs,
  });
  return { auth: 'certificate', certificate, privateKey, topic: 'com.example.app' };
}
