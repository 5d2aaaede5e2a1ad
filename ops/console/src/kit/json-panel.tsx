import type { ReactNode } from 'react';
import { Copy } from './controls/copy.tsx';
import styles from './panel.module.css';
import { Panel } from './panel.tsx';

/** Box with a value as JSON, which a button copies. */
export function JsonPanel({ title, value, side }: { title: string; value: unknown; side?: ReactNode }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <Panel
      title={title}
      side={
        <div className={styles.actions}>
          <Copy text={text} />
          {side}
        </div>
      }
    >
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard. */}
      <pre className={styles.json} tabIndex={0}>
        {text}
      </pre>
    </Panel>
  );
}
