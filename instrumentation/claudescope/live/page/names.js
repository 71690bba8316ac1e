// Attribute names that the page reads from spans, as `semconv` spells them (a test compares the two).

export const CHAIN_CONFIDENCE = "claudescope.chain.confidence";
export const CHAIN_ID = "claudescope.chain.id";
export const CONFIDENCE = "claudescope.step.confidence";
export const ERROR_TYPE = "error.type";
export const INPUT_MESSAGES = "gen_ai.input.messages";
export const LATENCY_SOURCE = "claudescope.step.latency.source";
export const OPERATION = "gen_ai.operation.name";
export const OUTPUT_MESSAGES = "gen_ai.output.messages";
export const REQUEST_MODEL = "gen_ai.request.model";
export const STEP_INDEX = "claudescope.step.index";
export const STEP_INCOMPLETE = "claudescope.step.incomplete";
export const STEP_KIND = "claudescope.step.kind";
export const STEP_NAME = "claudescope.step.name";
export const STEP_TEXT = "claudescope.step.text";
export const STEP_TEXT_LENGTH = "claudescope.step.text.length";
export const STEP_VALID = "claudescope.step.valid";
export const SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions";
export const TOOL_CALL_ID = "gen_ai.tool.call.id";
export const TOOL_NAME = "gen_ai.tool.name";
export const VALIDITY_CHECKS = "claudescope.step.validity.checks";
