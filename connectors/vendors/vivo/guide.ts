import type { GuideFacts } from '../../contract/guide.ts';

/** vivo's credentials (protocol/vivo.md#host). */
export const vivoGuide: GuideFacts = {
  name: 'vivo',
  example: {
    appId: '10004',
    appKey: '25509283-0000-4b9e-83fe-b6e55ac6243e',
    appSecret: '01234567-89ab-4cde-8f01-23456789abcd',
  },
  numericId: 'appId',
};
