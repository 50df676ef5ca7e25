/** Arguments for a shell. */

const PLAIN = /^[\w@%+=:,./-]+$/
/** Characters that a terminal does not show as they are: controls, and those that change the direction of text. */
const UNSHOWN = /[\p{Cc}\p{Cf}\u2028\u2029]/u
const EACH_UNSHOWN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

const unshown = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  const digits = code.toString(16)
  return code > 0xffff ? `\\U${digits.padStart(8, '0')}` : `\\u${digits.padStart(4, '0')}`
}

/** In single quotes; with characters that are not shown, as `$'…'` (bash, ksh, zsh), so that the text can be printed. */
function quoted(text: string): string {
  if (PLAIN.test(text)) return text
  if (!UNSHOWN.test(text)) return `'${text.replaceAll("'", `'\\''`)}'`
  return `$'${text.replaceAll(/['\\]/g, String.raw`\$&`).replaceAll(EACH_UNSHOWN, unshown)}'`
}

/** An argument, quoted for a shell where that is needed; of an option `--name=value`, the value. */
export function shellWord(word: string): string {
  const [, option = '', value = word] = /^(--[a-z-]+=)(.*)$/s.exec(word) ?? []
  return `${option}${quoted(value)}`
}
