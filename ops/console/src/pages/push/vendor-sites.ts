import type { ConnectorId } from '../../../../../shared/domain/labels.ts';

/** Site of each vendor for developers, where an operator corrects the app and its rights. */
export const vendorSites: Readonly<Partial<Record<ConnectorId, string>>> = {
  apns: 'https://developer.apple.com/account',
  fcm: 'https://console.firebase.google.com',
  vendor_a: 'https://developer.huawei.com/consumer',
  vendor_b: 'https://dev.mi.com',
  vendor_c: 'https://open.flyme.cn',
  vendor_d: 'https://open.oppomobile.com',
  vendor_e: 'https://dev.vivo.com.cn',
  vendor_f: 'https://developer.honor.com',
  vendor_g: 'https://console.firebase.google.com',
};

/** Remedies that name something on the site of the vendor. */
const siteRemedies: ReadonlySet<string> = new Set([
  'credentials',
  'right',
  'category',
  'barred',
  'review',
  'testDevice',
  'region',
  'receipts',
  'gatewayQuota',
  'vendorCode',
  'wrongApp',
]);

/** Returns the site of the vendor if the remedy leads there. */
export const siteOf = (connector: ConnectorId, remedy: string): string | undefined =>
  siteRemedies.has(remedy) ? vendorSites[connector] : undefined;
