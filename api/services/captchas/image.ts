import { randomInt } from 'node:crypto';
import { renderAsync } from '@resvg/resvg-js';
import svgCaptcha from 'svg-captcha';
import { z } from 'zod';

/** Letters and digits that are easy to tell apart. */
const alphabet = 'ACEFHKLMNPRTUVWXYZ3679';

/** The module of svg-captcha is its drawing function, which its types omit. */
const drawGlyph = z
  .custom<(text: string, options: object) => string>((value) => typeof value === 'function')
  .parse(svgCaptcha);

/** Size of a captcha. */
export interface CaptchaShape {
  /** Width in pixels. */
  width: number;
  height: number;
  /** Number of characters. */
  size: number;
}

/** Returns a random text for a captcha. */
export function newCaptchaText(size: number): string {
  let text = '';
  for (let i = 0; i < size; i += 1) text += alphabet[randomInt(alphabet.length)];
  return text;
}

/**
 * Draws a text as a PNG. Rotates, shears and scales each character, bends all characters along one
 * wave, and draws lines in their colours over them. Glyphs are outlines of a font in the package,
 * so no system font is needed. Rendering runs outside the main thread.
 */
export async function drawCaptcha(text: string, shape: CaptchaShape): Promise<Buffer> {
  const image = await renderAsync(captchaSvg(text, shape), { font: { loadSystemFonts: false } });
  return image.asPng();
}

function captchaSvg(text: string, { width, height }: CaptchaShape): string {
  const step = width / (text.length + 0.4);
  // Capitals of this font are half as high as the font size.
  const fontSize = Math.min(height * 1.45, step * 2.1);
  const stroke = (fontSize * 0.024).toFixed(2);
  const wave = newWave(height);
  const glyphs = [...text].map((char, i) => {
    const color = darkColor();
    const centre = { x: step * (i + 0.7) + between(-0.08, 0.08) * step, y: height / 2 };
    return `<path fill="${color}" stroke="${color}" stroke-width="${stroke}" d="${transformed(glyphPath(char, fontSize), centre, wave)}"/>`;
  });
  const lines = Array.from({ length: 2 }, () =>
    line(width, height, darkColor(), between(0.8, 1.4)),
  );
  // A line in the background colour cuts the characters into pieces.
  const cut = line(width, height, '#fff', between(0.8, 1.2));
  const dots = Array.from({ length: Math.round((width * height) / 130) }, () => dot(width, height));
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">` +
    `<rect width="100%" height="100%" fill="#fff"/>${dots.join('')}${glyphs.join('')}${cut}${lines.join('')}</svg>`
  );
}

/** Outline of a character around the origin. */
function glyphPath(char: string, fontSize: number): string {
  const svg = drawGlyph(char, { width: 2, height: 0, noise: 0, fontSize });
  return / d="([^"]*)"/.exec(svg)?.[1] ?? '';
}

interface Point {
  x: number;
  y: number;
}

type Wave = (point: Point) => Point;

/**
 * Transforms the outline of a character. The outline consists only of coordinate pairs, so each
 * pair is transformed.
 */
function transformed(path: string, { x, y }: Point, wave: Wave): string {
  const angle = between(-0.32, 0.32);
  const shear = between(-0.25, 0.25);
  const scale = between(0.88, 1.08);
  const [cos, sin] = [Math.cos(angle) * scale, Math.sin(angle) * scale];
  return path.replace(/(-?[\d.]+)[\s,]*(-?[\d.]+)/g, (_all, a: string, b: string) => {
    const [px, py] = [Number(a) + shear * Number(b), Number(b)];
    const bent = wave({ x: x + px * cos - py * sin, y: y + px * sin + py * cos });
    // The blank is required, because a minus sign may have been the only separator.
    return ` ${bent.x.toFixed(2)} ${bent.y.toFixed(2)}`;
  });
}

function newWave(height: number): Wave {
  const [amplitude, length, phase] = [
    between(0.03, 0.07) * height,
    between(30, 50),
    between(0, 6.28),
  ];
  const [sway, swayLength, swayPhase] = [
    between(0.02, 0.04) * height,
    between(18, 30),
    between(0, 6.28),
  ];
  return ({ x, y }) => ({
    x: x + sway * Math.sin(y / (swayLength / 6.28) + swayPhase),
    y: y + amplitude * Math.sin(x / (length / 6.28) + phase),
  });
}

function line(width: number, height: number, color: string, strokeWidth: number): string {
  const y = () => between(0.15, 0.85) * height;
  const [x1, x2] = [between(0.2, 0.45) * width, between(0.55, 0.8) * width];
  const points = [y(), x1, y(), x2, y(), width, y()].map((value) => value.toFixed(1));
  const [from, ...rest] = points;
  return `<path d="M0 ${from}C${rest.join(' ')}" stroke="${color}" stroke-width="${strokeWidth.toFixed(1)}" fill="none"/>`;
}

function dot(width: number, height: number): string {
  const [x, y, r] = [between(0, width), between(0, height), between(0.3, 0.9)];
  return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${r.toFixed(1)}" fill="${darkColor()}"/>`;
}

/** Returns a random colour that is readable on white. */
const darkColor = () => `hsl(${randomInt(360)},${randomInt(45, 80)}%,${randomInt(20, 34)}%)`;

const between = (low: number, high: number) =>
  low + (randomInt(1_000_001) / 1_000_000) * (high - low);
