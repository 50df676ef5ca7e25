/** Wraps text between words. */

/** Lines of at most `width` characters. A longer word gets lines of its own, cut at the width. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const extended = line === '' ? word : `${line} ${word}`
    if (extended.length <= width) {
      line = extended
      continue
    }
    if (line !== '') lines.push(line)
    for (line = word; line.length > width; line = line.slice(width)) lines.push(line.slice(0, width))
  }
  return [...lines, line]
}

/** Lines of at most `width` characters: the text after `prefix`, continued at `indent`. */
export function hanging(
  prefix: string,
  text: string,
  { width, indent }: { readonly width: number; readonly indent: number },
): readonly string[] {
  const [first = '', ...rest] = wrapped(text, Math.max(10, width - Math.max(prefix.length, indent)))
  return [`${prefix}${first}`.trimEnd(), ...rest.map((line) => `${' '.repeat(indent)}${line}`.trimEnd())]
}
