import { Link, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useAppMenu, useAppName } from '../../api/apps.ts';
import { includesRole, useOperator, useSessionActions } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Menu, MenuItem } from '../../kit/controls/menu.tsx';
import { Icon } from '../../kit/icon.tsx';
import { chooseLanguage } from '../../text/texts.ts';
import styles from './navigation.module.css';
import { appPages, isOpenTo, servicePages } from './page-entries.ts';

/** Links to the pages of the app and of the service. */
export function Navigation({ appId, isOpen }: { appId: string | undefined; isOpen: boolean }) {
  const { t } = useTranslation();
  const { role, apps } = useOperator();
  const person = { apps, may: (needed: typeof role) => includesRole(role, needed) };
  const active = { className: `${styles.link} ${styles.active}`, 'aria-current': 'page' as const };
  const common = { className: styles.link, activeProps: active };
  return (
    <nav
      id="navigation"
      className={`${styles.nav} ${isOpen ? styles.open : ''}`}
      aria-label={t('shell.navigation')}
    >
      {appId !== undefined && (
        <ul className={styles.group}>
          {appPages
            .filter((place) => place.isUnlisted !== true && isOpenTo(place, person))
            .map(({ to, title, icon }) => (
              <li key={to}>
                <Link
                  to={to}
                  params={{ appId }}
                  activeOptions={{ exact: to === '/apps/$appId' }}
                  {...common}
                >
                  {icon && <Icon name={icon} />}
                  {t(title)}
                </Link>
              </li>
            ))}
        </ul>
      )}
      <ul className={styles.group}>
        {servicePages
          .filter((place) => place.isUnlisted !== true && isOpenTo(place, person))
          .map(({ to, title, icon }) => (
            <li key={to}>
              <Link to={to} activeOptions={{ exact: to === '/' }} {...common}>
                {icon && <Icon name={icon} />}
                {t(title)}
              </Link>
            </li>
          ))}
      </ul>
    </nav>
  );
}

/** Name of the current app, and a menu of other apps. */
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

/** First apps by name. They are loaded when the menu opens. */
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
      {hasMore && (
        <MenuItem onClick={() => void navigate({ to: '/' })}>{t('shell.moreApps')}</MenuItem>
      )}
    </>
  );
}

/** Name and role of the person, and the logout. */
export function PersonMenu({ help }: { help: () => void }) {
  const { t } = useTranslation();
  const { name, role } = useOperator();
  const { logout } = useSessionActions();
  const person = t('shell.person', { name, role: t(`role.${role}`) });
  return (
    <Menu name={person} label={person}>
      <MenuItem onClick={help}>{t('help.title')}</MenuItem>
      <MenuItem onClick={() => void logout()}>{t('shell.logout')}</MenuItem>
    </Menu>
  );
}

/** Button that switches to the other language. Its text is in that language. */
export function LanguageChoice() {
  const { i18n } = useTranslation();
  const other = i18n.language === 'zh' ? 'en' : 'zh';
  return (
    <Button variant="quiet" lang={other} onClick={() => void chooseLanguage(other)}>
      {other === 'zh' ? '中文' : 'English'}
    </Button>
  );
}

const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];
const themeKey = 'carillon-theme';

const storedTheme = (): Theme =>
  themes.find((theme) => theme === localStorage.getItem(themeKey)) ?? 'system';

/** Applies the stored theme. */
export function applyTheme(theme: Theme = storedTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Button that cycles through the themes: system, light, dark. */
export function ThemeChoice() {
  const { t } = useTranslation();
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system';
  const choose = () => {
    localStorage.setItem(themeKey, next);
    applyTheme(next);
    setTheme(next);
  };
  return (
    <Button
      variant="quiet"
      onClick={choose}
      aria-label={t('theme.label', { theme: t(`theme.${theme}`) })}
    >
      {t(`theme.${theme}`)}
    </Button>
  );
}
