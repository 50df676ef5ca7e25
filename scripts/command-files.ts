/** Files that are generated from the help texts, besides docs/commands.md. */
import type { Command } from 'commander'
import { commandTree } from './command-tree.ts'
import { bashCompletion, fishCompletion, zshCompletion } from './completions.ts'
import { manPages } from './man-pages.ts'

/** Paths in the repository, and texts. */
export function generatedCommandFiles(program: Command, version: string): ReadonlyMap<string, string> {
  const tree = commandTree(program)
  const pages = [...manPages(tree, version)].map(([name, text]): [string, string] => [`man/${name}`, text])
  return new Map([
    ...pages,
    ['contrib/completions/deferd.bash', bashCompletion(tree)],
    ['contrib/completions/_deferd', zshCompletion(tree)],
    ['contrib/completions/deferd.fish', fishCompletion(tree)],
  ])
}
