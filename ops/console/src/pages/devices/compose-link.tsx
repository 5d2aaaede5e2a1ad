import { Link } from '@tanstack/react-router';
import { useMay } from '../../api/session.tsx';
import { buttonLook } from '../../kit/controls/button.tsx';

/** Way to the page that composes a push to the devices of a condition. */
export function ComposeLink({ appId, where, label }: { appId: string; where: string; label: string }) {
  const maySend = useMay('sender');
  if (!maySend) return null;
  return (
    <Link className={buttonLook('plain')} to="/apps/$appId/pushes/new" params={{ appId }} search={{ where }}>
      {label}
    </Link>
  );
}
