import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useApps } from '../../api/queries.ts';
import { Menu, MenuItem } from '../../kit/controls/menu.tsx';

/** Name of the app of the page, and the choice of another one. */
export function AppMenu({ appId }: { appId: string | undefined }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { data } = useApps();
  const apps = data?.results ?? [];
  const current = apps.find((app) => app.appId === appId);
  const label = appId === undefined ? t('shell.allApps') : (current?.name ?? appId);
  return (
    <Menu name={t('shell.chooseApp', { name: label })} label={label}>
      <MenuItem onClick={() => void navigate({ to: '/' })}>{t('shell.allApps')}</MenuItem>
      {apps.map((app) => (
        <MenuItem
          key={app.appId}
          onClick={() => void navigate({ to: '/apps/$appId', params: { appId: app.appId } })}
        >
          {app.name}
        </MenuItem>
      ))}
    </Menu>
  );
}
