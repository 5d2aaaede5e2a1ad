import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { type AdminRequest, adminBase } from '../../../../client/client.ts';
import { Button } from './button.tsx';
import copyStyles from './copy.module.css';

const confirmationMs = 2000;

/** Button that copies a text and confirms this. */
export function Copy({ text, label }: { text: string; label?: string }) {
  const { t } = useTranslation();
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await writeClipboard(text);
    setCopied(true);
    setTimeout(() => setCopied(false), confirmationMs);
  };
  return (
    <Button variant="quiet" onClick={copy}>
      <span aria-live="polite">{isCopied ? t('action.copied') : (label ?? t('action.copy'))}</span>
    </Button>
  );
}

/** Copies a text. A page over http has no `navigator.clipboard`, except on this machine. */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const onCopy = (event: ClipboardEvent) => {
    event.clipboardData?.setData('text/plain', text);
    event.preventDefault();
  };
  document.addEventListener('copy', onCopy, { once: true });
  document.execCommand('copy');
}

/** Text to paste into a terminal. */
export function Snippet({ label, text }: { label: string; text: string }) {
  return (
    <figure className={copyStyles.snippet}>
      <figcaption>
        {label}
        <Copy text={text} />
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard. */}
      <pre tabIndex={0}>{text}</pre>
    </figure>
  );
}

/** CLI command and curl call that do the same as the page. */
export function Commands({ request, command }: { request: AdminRequest; command?: string }) {
  const { t } = useTranslation();
  const url = `${window.location.origin}${adminBase}${request.path}`;
  return (
    <details className={copyStyles.commands}>
      <summary>{t('commands.title')}</summary>
      <Snippet
        label="curl"
        text={`curl -s '${url}' -H "Authorization: Bearer $CARILLON_ADMIN_TOKEN"`}
      />
      {command && <Snippet label={t('commands.terminal')} text={`npx carillon ${command}`} />}
    </details>
  );
}
