import type { ButtonHTMLAttributes } from 'react';
import styles from './button.module.css';

interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** `primary` is the main action of a page. `danger` is an action that cannot be undone. */
  variant?: 'primary' | 'plain' | 'danger' | 'quiet';
  isBusy?: boolean;
}

/** Class names of a link that looks like a button. */
export const buttonClass = (variant: NonNullable<ButtonProps['variant']>): string =>
  `${styles.button} ${styles[variant]}`;

/** Button. A busy button keeps its size and ignores clicks. */
export function Button({
  variant = 'plain',
  isBusy = false,
  type = 'button',
  ...rest
}: ButtonProps) {
  const onClick = isBusy ? undefined : rest.onClick;
  return (
    <button
      {...rest}
      type={type}
      onClick={onClick}
      aria-busy={isBusy || undefined}
      className={`${styles.button} ${styles[variant]} ${rest.className ?? ''}`}
    />
  );
}
