/**
 * Statements after which the triggers of a test count as those of the system: a node that finds triggers of another program does not
 * start.
 */
export const hidingTriggers = (...names: readonly string[]): string => `
set allow_system_table_mods = on;
update pg_trigger set tgisinternal = true where tgname in (${names.map((name) => `'${name}'`).join(', ')});
reset allow_system_table_mods`
