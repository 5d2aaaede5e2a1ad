import styles from './icon.module.css';

/** Lines of each icon, in a square of 16 units. */
const lines = {
  overview: 'M2 9l6-6 6 6M4 8v6h8V8',
  pushes: 'M2 3h12v8H7l-3 3v-3H2z',
  compose: 'M3 13l1-3 7-7 2 2-7 7z',
  devices: 'M5 1.500h6v13H5zM7 12.500h2',
  users: 'M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.500 14c.5-3 2.500-4 5.500-4s5 1 5.500 4',
  gateways: 'M8 14V8M5 11a4 4 0 1 1 6 0M3 13a7 7 0 1 1 10 0',
  quotas: 'M2 12a6 6 0 1 1 12 0M8 12l3-4',
  reports: 'M2 14V2M2 14h12M5 11V8M8 11V5M11 11V7',
  messages: 'M2 4h12v9H2zM2 5l6 4 6-4',
  webhooks: 'M5 11a3 3 0 1 0-3-3M11 5a3 3 0 1 0 3 3M5 8h6',
  settings: 'M2 4h7M12 4h2M2 12h3M8 12h6M10.500 2.500v3M6.500 10.500v3M2 8h2M7 8h7M5.500 6.500v3',
  apps: 'M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z',
  operations: 'M1 8h3l2-5 3 10 2-5h4',
  members:
    'M6 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1.500 13c.5-2.500 2-3.500 4.500-3.500s4 1 4.500 3.500M11 3.500a2.500 2.500 0 0 1 0 4.500M12 10c1.500.5 2.200 1.500 2.500 3',
  audit: 'M3 1.500h7l3 3v10H3zM5.500 7h5M5.500 10h5',
  freeze: 'M8 1.500v13M2.500 4.700l11 6.600M13.500 4.700l-11 6.600',
  menu: 'M2 4h12M2 8h12M2 12h12',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3',
  help: 'M8 14.500a6.500 6.500 0 1 0 0-13 6.500 6.500 0 0 0 0 13zM6 6.300a2 2 0 1 1 2.700 1.900c-.5.2-.7.5-.7 1v.3M8 11.400v.3',
} as const;

export type IconName = keyof typeof lines;

/** Icon next to a text that says the same. Screen readers skip it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className={styles.icon} viewBox="0 0 16 16" aria-hidden="true">
      <path d={lines[name]} />
    </svg>
  );
}

/** Mark of the product: a bell. */
export function Bell() {
  return (
    <svg className={styles.bell} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path d="M16 6c-4.400 0-7 3.200-7 7.500V18l-2 3.500h18L23 18v-4.500C23 9.200 20.400 6 16 6zM13 23.500a3 3 0 0 0 6 0z" />
    </svg>
  );
}
