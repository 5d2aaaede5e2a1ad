import { useNavigate } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { useAppMenu, useAppName } from '../../api/apps.ts';
import { Menu, MenuItem } from '../../kit/controls/menu.tsx';

/** Name of the app of the page, and the choice of another one. */
export function AppMenu({ appId }: { appId: string | undefined }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const name = useAppName(appId);
  const label = appId === undefined ? t('shell.allApps') : name;
  return (
    <Menu name={t('shell.chooseApp', { name: label })} label={label}>
      <MenuItem onClick={() => void navigate({ to: '/' })}>{t('shell.allApps')}</MenuItem>
      <Apps />
    </Menu>
  );
}

/** The first apps by name. They are loaded when the menu opens. */
function Apps() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { apps, hasMore } = useAppMenu();
  return (
    <>
      {apps.map((app) => (
        <MenuItem
          key={app.appId}
          onClick={() => void navigate({ to: '/apps/$appId', params: { appId: app.appId } })}
        >
          {app.name}
        </MenuItem>
      ))}
      {hasMore && <MenuItem onClick={() => void navigate({ to: '/' })}>{t('shell.moreApps')}</MenuItem>}
    </>
  );
}
