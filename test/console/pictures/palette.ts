import { crc32, deflateSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { z } from 'zod';

const pixelsOf = z.object({ width: z.int(), height: z.int(), rgba: z.string() });
const maxColours = 256;
const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/**
 * Writes a picture with at most 256 colours. It is a third as large, because surfaces and text have
 * few colours.
 */
export async function toPalette(page: Page, png: Buffer): Promise<Buffer> {
  const { width, height, rgba } = pixelsOf.parse(await page.evaluate(decodeScript(png)));
  const pixels = Buffer.from(rgba, 'base64');
  const { colours, indexOf } = choosePalette(pixels);
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0, from = 0; y < height; y++)
    for (let x = 0; x < width; x++, from += 4)
      rows[y * (width + 1) + 1 + x] = indexOf(pixels.readUIntBE(from, 3));
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Each pixel has eight bits, the index of a colour.
  header.set([8, 3, 0, 0, 0], 8);
  const palette = Buffer.from(
    colours.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]),
  );
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** Returns a script that decodes a picture in the browser. */
function decodeScript(png: Buffer): string {
  return `(async () => {
    const bytes = Uint8Array.fromBase64('${png.toString('base64')}');
    const image = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
    const { width, height } = image;
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, width, height);
    return { width, height, rgba: new Uint8Array(data.buffer).toBase64() };
  })()`;
}

/** Chooses the most frequent colours. Other colours become the nearest of them. */
function choosePalette(pixels: Buffer) {
  const counts = new Map<number, number>();
  for (let at = 0; at < pixels.length; at += 4) {
    const colour = pixels.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const colours = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, maxColours)
    .map(([colour]) => colour);
  const known = new Map(colours.map((colour, index) => [colour, index]));
  const indexOf = (colour: number): number => {
    const found = known.get(colour);
    if (found !== undefined) return found;
    const nearest = colours.reduce(
      (best, one, index) =>
        distance(one, colour) < distance(colours[best] ?? 0, colour) ? index : best,
      0,
    );
    known.set(colour, nearest);
    return nearest;
  };
  return { colours, indexOf };
}

function distance(a: number, b: number): number {
  const part = (shift: number) => ((a >> shift) & 255) - ((b >> shift) & 255);
  return part(16) ** 2 + part(8) ** 2 + part(0) ** 2;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}
