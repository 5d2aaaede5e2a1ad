import type { ButtonHTMLAttributes } from 'react';
import styles from './button.module.css';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `primary` is the one action of a page, `danger` an action that cannot be undone. */
  look?: 'primary' | 'plain' | 'danger' | 'quiet';
  isBusy?: boolean;
}

/** Classes of a link that looks like a button. */
export const buttonLook = (look: NonNullable<ButtonProps['look']>): string =>
  `${styles.button} ${styles[look]}`;

/** Button. While it is busy it keeps its size and takes no clicks. */
export function Button({ look = 'plain', isBusy = false, type = 'button', ...rest }: ButtonProps) {
  const onClick = isBusy ? undefined : rest.onClick;
  return (
    <button
      {...rest}
      type={type}
      onClick={onClick}
      aria-busy={isBusy || undefined}
      className={`${styles.button} ${styles[look]} ${rest.className ?? ''}`}
    />
  );
}
