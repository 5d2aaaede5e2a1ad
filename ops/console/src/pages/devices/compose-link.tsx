import { useMay } from '../../api/session.tsx';
import button from '../../kit/controls/button.module.css';

/** Way to the page that composes a push to the devices of a condition. */
export function ComposeLink({ appId, where, label }: { appId: string; where: string; label: string }) {
  const maySend = useMay('sender');
  if (!maySend) return null;
  const search = new URLSearchParams({ where });
  return (
    <a
      className={`${button.button} ${button.plain}`}
      href={`/console/apps/${encodeURIComponent(appId)}/pushes/new?${search}`}
    >
      {label}
    </a>
  );
}
