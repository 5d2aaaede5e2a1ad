import { vendorName } from '../../text/explanation.ts';

/** Members of `data` for one kind of device, with the name of the kind. */
export const deviceKinds = [
  ['ios', 'iOS'],
  ['android', 'Android'],
  ['hms', 'Huawei'],
  ['honor', 'Honor'],
  ['mi', 'Xiaomi'],
  ['oppo', 'OPPO'],
  ['vivo', 'vivo'],
  ['mz', 'Meizu'],
  ['fcm', 'FCM'],
] as const;

/** Returns the displayed name of a kind. FCM is the only kind that is not a brand of devices. */
export const deviceKindName = (key: string, name: string): string =>
  key === 'fcm' ? name : (vendorName(key) ?? name);
