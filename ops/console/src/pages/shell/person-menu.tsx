import { useTranslation } from 'react-i18next';
import { useOperator, useSessionActions } from '../../api/session.tsx';
import { Menu, MenuItem } from '../../kit/controls/menu.tsx';

/** Name and role of the person, and the way out. */
export function PersonMenu() {
  const { t } = useTranslation();
  const { name, role } = useOperator();
  const { logout } = useSessionActions();
  const shown = t('shell.person', { name, role: t(`role.${role}`) });
  return (
    <Menu name={shown} label={shown}>
      <MenuItem onClick={() => void logout()}>{t('shell.logout')}</MenuItem>
    </Menu>
  );
}
