/** The files of a Debian package, as values. Paths have no leading slash. */

/** A copy of a file, a text, or a symbolic link to `target`. */
export type Entry =
  | { readonly path: string; readonly kind: 'copy'; readonly from: string; readonly mode: number }
  | { readonly path: string; readonly kind: 'text'; readonly text: string | Uint8Array; readonly mode: number }
  | { readonly path: string; readonly kind: 'link'; readonly target: string }

export const FILE_MODE = 0o644
export const PROGRAM_MODE = 0o755

export const copy = (from: string, path: string, mode = FILE_MODE): Entry => ({ kind: 'copy', from, path, mode })

export const text = (path: string, content: string | Uint8Array, mode = FILE_MODE): Entry => ({ kind: 'text', text: content, path, mode })

export const link = (path: string, target: string): Entry => ({ kind: 'link', target, path })
