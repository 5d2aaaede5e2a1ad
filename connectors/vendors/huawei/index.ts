import type { JsonObject } from '../../../shared/domain/json.ts';
import { isHarmonyDeviceType } from '../../../shared/domain/labels.ts';
import type { HttpTiming } from '../../../shared/http/client.ts';
import type { Connector, PushMessage } from '../../contract/connector.ts';
import { type HuaweiCredentials, huaweiCredentials, inspectHuawei, openHuawei } from './client.ts';
import { classError } from './members.ts';
import {
  bodyOf,
  can,
  type HuaweiPayload,
  identityInV1,
  limits,
  notShown,
  renderV1,
  testLimit,
} from './payload.ts';
import { renderV3, shownInV3, v3Error } from './payload-v3.ts';
import { readReceipts } from './receipts.ts';

/**
 * Returns the ids of a message for each API. A device that is not certainly HarmonyOS may have got
 * it through either API.
 */
function identityOf(message: PushMessage, deviceType: string): JsonObject | null {
  const shown = shownInV3(message);
  const v3 = shown && { notifyId: shown.notifyId };
  if (isHarmonyDeviceType(deviceType)) return v3 && { v3 };
  const v1 = identityInV1(message);
  return v1 && { v1, v3 };
}

/** Creates the connector. Tests pass shorter timeouts. */
export function huaweiConnector(timing?: HttpTiming): Connector<HuaweiCredentials, HuaweiPayload> {
  return {
    id: 'vendor_a',
    can,
    limits,
    tokenField: 'registrationId',
    credentials: huaweiCredentials,
    render: (message, deviceType) =>
      isHarmonyDeviceType(deviceType) ? renderV3(message) : (v3Error(message) ?? renderV1(message)),
    preview: (payload) => bodyOf(payload, ['TOKEN']),
    identityOf,
    // Huawei describes its recall for HarmonyOS only (protocol/huawei.md#recall).
    canRecall: (message, deviceType) =>
      isHarmonyDeviceType(deviceType) && shownInV3(message) !== null,
    // Huawei counts recipients (protocol/huawei.md#limits). AppGallery Connect shows the rate of an
    // app.
    rate: ({ ratePerSecond: perSecond }) =>
      perSecond === undefined ? null : { perSecond, counts: 'recipients', burst: 0, rampMs: 0 },
    testLimit,
    classError,
    notShown,
    inspect: inspectHuawei,
    receipts: readReceipts,
    open: (credentials, context) => openHuawei(credentials, context, timing),
  };
}

/** Huawei Push Kit (protocol/huawei.md). */
export const huawei = huaweiConnector();
