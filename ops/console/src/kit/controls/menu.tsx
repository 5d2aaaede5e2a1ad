import { Menu as Base } from '@base-ui/react/menu';
import type { ReactNode } from 'react';
import styles from './menu.module.css';

/** Button that opens a menu. */
export function Menu({
  label,
  name,
  children,
}: {
  label: ReactNode;
  name: string;
  children: ReactNode;
}) {
  return (
    <Base.Root modal={false}>
      <Base.Trigger className={styles.trigger} aria-label={name}>
        {label}
        <span aria-hidden="true">▾</span>
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner className={styles.positioner} sideOffset={4} align="start">
          <Base.Popup className={styles.popup}>{children}</Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

/** Entry of a menu. */
export function MenuItem({ children, onClick }: { children: ReactNode; onClick: () => void }) {
  return (
    <Base.Item className={styles.item} onClick={onClick}>
      {children}
    </Base.Item>
  );
}
