/** Loads the templates of notices: those of bounce_template_file, or the built-in ones. */
import { readFileSync } from 'node:fs'
import { errorMessage } from '../system/caught-error.ts'
import { loadTemplates, type LoadedTemplates } from '../bounce/templates.ts'
import type { LoadedConfig } from '../config/load.ts'

/** The template file cannot be read (EX_CONFIG). */
class TemplatesUnreadable extends Error {
  override readonly name = 'TemplatesUnreadable'
  readonly exitCode = 78
}

/** Throws TemplatesUnreadable, or ConfigError with all problems of the file. */
export function templatesOf({ config, written }: Pick<LoadedConfig, 'config' | 'written'>): LoadedTemplates {
  const path = config.bounce_template_file
  if (path === '') return loadTemplates({ config, written })
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new TemplatesUnreadable(`bounce_template_file: cannot read ${path}: ${errorMessage(cause)}`, { cause })
  }
  return loadTemplates({ config, written }, { path, content })
}
