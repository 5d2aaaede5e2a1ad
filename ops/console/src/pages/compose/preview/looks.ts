/** How a maker's system draws a notification on the lock screen. */
export interface Look {
  /** Name of the system. */
  system: string;
  /** Icon at the left of the texts, or a line with icon and name of the app above them. */
  layout: 'side' | 'head';
  clock: 'centre' | 'left' | 'stacked';
  corners: 'small' | 'medium' | 'large';
  icon: 'square' | 'round';
  /** Lines of the text that show before the notification is opened. */
  lines: 1 | 2 | 4;
  /** A number on the icon of the app is set by the push. */
  hasBadge: boolean;
}

const ios: Look = {
  system: 'iOS',
  layout: 'side',
  clock: 'centre',
  corners: 'large',
  icon: 'square',
  lines: 4,
  hasBadge: true,
};
const android: Look = {
  system: 'Android',
  layout: 'head',
  clock: 'stacked',
  corners: 'large',
  icon: 'round',
  lines: 1,
  hasBadge: false,
};

/** Connectors whose messages their systems show. Messages of the own channel are drawn by the app. */
export const looks: Readonly<Record<string, Look>> = {
  apns: ios,
  fcm: android,
  vendor_g: android,
  vendor_a: { ...android, system: 'EMUI, HarmonyOS', clock: 'left', corners: 'medium', icon: 'square' },
  vendor_b: { ...android, system: 'HyperOS', layout: 'side', clock: 'left', icon: 'square' },
  vendor_c: { ...android, system: 'Flyme', layout: 'side', clock: 'left', corners: 'small', icon: 'square' },
  vendor_d: { ...android, system: 'ColorOS', clock: 'centre', corners: 'medium', icon: 'square', lines: 2 },
  vendor_e: { ...android, system: 'OriginOS', layout: 'side', clock: 'left', corners: 'medium', lines: 2 },
  vendor_f: {
    ...android,
    system: 'MagicOS',
    clock: 'centre',
    corners: 'medium',
    icon: 'square',
    hasBadge: true,
  },
  channel: { ...android, system: 'Android', clock: 'stacked' },
};
