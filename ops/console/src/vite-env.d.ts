/** Digest of the sources of this build. */
declare const __BUILD__: string;
