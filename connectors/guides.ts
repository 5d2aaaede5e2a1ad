/**
 * Help on the credentials of each gateway. The console imports it too: no connector, no module of
 * Node.js.
 */
import type { ConnectorId } from '../shared/domain/labels.ts';
import type { Language } from '../shared/domain/texts/catalogue.ts';
import { apnsGuide } from './apns/guide.ts';
import { type CredentialGuide, type GuideFacts, guideIn } from './contract/guide.ts';
import { fcmGuide } from './fcm/guide.ts';
import { honorGuide } from './vendors/honor/guide.ts';
import { huaweiGuide } from './vendors/huawei/guide.ts';
import { meizuGuide } from './vendors/meizu/guide.ts';
import { oppoGuide } from './vendors/oppo/guide.ts';
import { vivoGuide } from './vendors/vivo/guide.ts';
import { xiaomiGuide } from './vendors/xiaomi/guide.ts';

const guides: Partial<Record<ConnectorId, GuideFacts>> = {
  apns: apnsGuide,
  fcm: fcmGuide,
  vendor_a: huaweiGuide,
  vendor_b: xiaomiGuide,
  vendor_c: meizuGuide,
  vendor_d: oppoGuide,
  vendor_e: vivoGuide,
  vendor_f: honorGuide,
  vendor_g: fcmGuide,
};

/** Returns help on the credentials of a connector; undefined if it takes none. */
export function guideOf(connectorId: ConnectorId, language: Language = 'en'): CredentialGuide | undefined {
  const facts = guides[connectorId];
  return facts && guideIn(facts, language);
}
