import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/controls/button.tsx';
import { chooseLanguage } from '../../text/texts.ts';

/** Button that changes to the other language; its text is in that language. */
export function LanguageChoice() {
  const { i18n } = useTranslation();
  const other = i18n.language === 'zh' ? 'en' : 'zh';
  return (
    <Button look="quiet" lang={other} onClick={() => void chooseLanguage(other)}>
      {other === 'zh' ? '中文' : 'English'}
    </Button>
  );
}

const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];
const themeKey = 'carillon-theme';

const storedTheme = (): Theme => themes.find((theme) => theme === localStorage.getItem(themeKey)) ?? 'system';

/** Applies the theme that was chosen before. */
export function applyTheme(theme: Theme = storedTheme()): void {
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** Button that goes through the themes: as the system, light, dark. */
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
    <Button look="quiet" onClick={choose} aria-label={t('theme.label', { theme: t(`theme.${theme}`) })}>
      {t(`theme.${theme}`)}
    </Button>
  );
}
