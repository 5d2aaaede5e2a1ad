import type { TFunction } from 'i18next';
import type { ProfileDetail } from '../../../../../client/operations.ts';
import { formatCount } from '../../../text/format.ts';

/** Returns the number of devices that a profile serves; of an app with very many, the least. */
export function shownDevices(
  { devices, devicesAreLeast }: Pick<ProfileDetail, 'devices' | 'devicesAreLeast'>,
  t: TFunction,
): string {
  const number = formatCount(devices);
  return devicesAreLeast ? t('profiles.least', { number }) : number;
}
