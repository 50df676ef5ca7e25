/** Fenced blocks of Markdown pages. */
import { readFileSync } from 'node:fs'

export interface FencedBlock {
  readonly page: string
  /** Language after the fence; empty without one. */
  readonly language: string
  readonly text: string
  /** Line of the opening fence. */
  readonly line: number
}

const root = new URL('../../', import.meta.url)

export function blocksOf(page: string): readonly FencedBlock[] {
  const text = readFileSync(new URL(page, root), 'utf8')
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map((match) => ({
    page,
    language: match[1] ?? '',
    text: match[2] ?? '',
    line: text.slice(0, match.index).split('\n').length,
  }))
}

/** The block of a page that contains a text. Throws unless exactly one does. */
export function blockWith(page: string, part: string): FencedBlock {
  const found = blocksOf(page).filter(({ text }) => text.includes(part))
  const [block] = found
  if (block === undefined || found.length > 1) throw new Error(`${page} has ${found.length} blocks with ${JSON.stringify(part)}`)
  return block
}
