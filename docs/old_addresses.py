"""Old addresses of the site lead on: a page for each notebook where it stood before it moved."""

from pathlib import Path

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Moved</title>
<link rel="canonical" href="{address}">
<meta http-equiv="refresh" content="1; url={address}">
<script>location.replace("{address}" + location.hash)</script>
<p>This page is at <a href="{address}">{address}</a> now.</p>
"""

MOVED = {
    "00_tour": "1_model/0_tour",
    "01_why_attention": "1_model/1_why_attention",
    "02_attention": "1_model/2_attention",
    "03_masks": "1_model/3_masks",
    "04_multi_head_attention": "1_model/4_multi_head_attention",
    "05_layers": "1_model/5_layers",
    "06_embeddings": "1_model/6_embeddings",
    "07_positions": "1_model/7_positions",
    "08_transformer": "1_model/8_transformer",
    "09_one_page": "1_model/9_one_page",
    "10_data": "2_training/1_data",
    "11_loss": "2_training/2_loss",
    "12_optimizer": "2_training/3_optimizer",
    "13_training": "2_training/4_training",
    "14_checkpoint": "2_training/6_checkpoints",
    "15_history": "reference/history",
    "16_transformer_config": "1_model/8_transformer",
    "17_initialisation": "depth/checking_a_transformer",
    "18_multi_head_attention_in_depth": "depth/multi_head_attention_in_depth",
    "19_embeddings_in_depth": "depth/embeddings_in_depth",
    "20_decoding": "3_decoding/1_greedy_decoding",
    "21_sampling": "3_decoding/3_sampling",
    "22_search": "3_decoding/4_beam_search",
    "23_metrics": "3_decoding/5_metrics",
    "24_kv_cache": "3_decoding/2_kv_cache",
    "25_beam_cache": "3_decoding/2_kv_cache",
    "26_decoding_in_depth": "depth/decoding_in_depth",
    "27_training_in_depth": "depth/training_in_depth",
    "28_loss_and_batches_in_depth": "depth/loss_and_batches_in_depth",
    "29_datasets.held_out": "9_practice/7_held_out_data",
    "30_datasets.synthetic": "4_copy_task/1_synthetic_tasks",
    "31_experiments.copy_task": "4_copy_task/2_copy_task",
    "32_inspection.attention_maps": "4_copy_task/3_attention_maps",
    "33_datasets.sentence_pairs": "4_copy_task/4_sentence_pairs",
    "34_inspection.attention_view": "4_copy_task/5_attention_view",
    "35_tokenizers.base": "reference/tokenizer",
    "36_tokenizers.words": "reference/tokenizer",
    "37_tokenizers.characters": "reference/tokenizer",
    "38_inspection.recording": "reference/recording",
    "39_experiments.translation": "5_translation/1_byte_pair_encoding",
    "40_tokenizers.bpe": "5_translation/1_byte_pair_encoding",
    "41_datasets.parallel_text": "5_translation/2_parallel_text",
    "42_experiments.translation": "5_translation/3_training_a_translator",
    "43_captions": "5_translation/5_multi30k_captions",
    "44_looking_into_a_translator": "5_translation/6_looking_into_a_translator",
    "45_datasets.streamed_text": "5_translation/7_large_corpora",
    "46_translation": "5_translation/4_using_a_translator",
    "47_datasets.numbers": "reference/numbers",
    "48_datasets.multi30k": "reference/multi30k",
    "49_datasets.corpora": "reference/corpora",
    "50_models.gpt": "6_descendants/1_gpt",
    "51_datasets.python_reference": "reference/python_reference",
    "52_experiments.language_model": "6_descendants/2_language_model",
    "53_models.bert": "6_descendants/3_bert",
    "54_experiments.topic_classification": "6_descendants/4_topic_classification",
    "55_datasets.images": "reference/images",
    "56_models.vit": "6_descendants/5_vit",
    "57_experiments.image_classification": "6_descendants/6_image_classification",
    "58_models.captioner": "6_descendants/7_captioner",
    "59_experiments.captioning": "6_descendants/8_captioning",
    "60_models.modern_layers": "7_since_2017/1_modern_layers",
    "61_models.mixture_of_experts": "7_since_2017/2_mixture_of_experts",
    "62_models.llama": "7_since_2017/3_llama",
    "63_generation": "7_since_2017/4_generation",
    "64_before_the_transformer": "depth/rnns_and_convolutions",
    "65_attention_in_depth": "depth/attention_in_depth",
    "66_masks_in_depth": "depth/masks_in_depth",
    "67_normalisation": "depth/layers_in_depth",
    "68_positions_in_depth": "depth/positions_in_depth",
    "69_parameters_of_table_3": "depth/parameters_of_table_3",
    "70_dropout": "8_speed/1_dropout",
    "71_speed.tiled_attention": "8_speed/2_flash_attention",
    "72_training_speed": "8_speed/3_fast_training",
    "73_distributed": "8_speed/4_distributed",
    "74_speed.decoding_speed": "8_speed/5_fast_decoding",
    "75_speed.allocations": "reference/allocations",
    "76_speed.async_copy": "reference/devices",
    "77_utils.memory": "reference/devices",
    "78_utils.extras": "reference/config",
    "79_modern_layers_in_depth": "depth/modern_layers_in_depth",
    "80_pitfalls": "9_practice/1_bugs",
    "81_pitfalls_in_training": "9_practice/2_bugs_in_training",
    "82_debugging.probes": "depth/probes",
    "83_debugging.checklist": "9_practice/3_check_transformer",
    "84_from_a_blog_post": "9_practice/4_from_a_blog_post",
    "85_interop.llama": "reference/hugging_face_families",
    "86_interop.huggingface": "9_practice/5_hugging_face_weights",
    "87_inside_published_models": "9_practice/6_inside_published_models",
    "88_interop.hf_tokenizer": "reference/hugging_face_tokenizers",
    "89_interop.hub": "reference/hub",
    "90_config": "reference/config",
    "91_figures.plotting": "reference/plotting",
    "92_experiments.runs": "reference/runs",
    "93_cli": "reference/command_line",
    "94_utils.atomic_folders": "reference/atomic_folders",
    "95_figures.diagrams": "reference/diagrams",
    "96_figures.svg": "reference/diagrams",
    "97_reliability": "reference/atomic_folders",
    "98_utils.signals": "2_training/5_callbacks",
    "99_utils.progress": "reference/progress",
    "100_models.ngram": "reference/ngrams",
    "101_interop.weight_map": "9_practice/5_hugging_face_weights",
    "102_interop.torch_weights": "reference/torch_weights",
    "103_debugging.calling": "reference/calling",
    "104_debugging.attention_trace": "reference/attention_trace",
    "105_debugging.masks": "reference/probes_of_masks",
    "106_debugging.positions": "reference/probes_of_positions",
    "107_debugging.weights": "reference/probes_of_weights",
    "108_debugging.outputs": "reference/probes_of_outputs",
    "110_figures.widgets": "reference/widgets",
    "2_training/5_checkpoints": "2_training/6_checkpoints",
    "reference/async_copy": "reference/devices",
    "reference/llama_weights": "reference/hugging_face_families",
    "reference/signals": "2_training/5_callbacks",
    "reference/extras": "reference/config",
    "reference/random_numbers": "reference/devices",
    "reference/reliability": "reference/atomic_folders",
    "depth/translation_in_depth": "5_translation/1_byte_pair_encoding",
    "reference/word_tokenizers": "reference/tokenizer",
    "reference/character_tokenizer": "reference/tokenizer",
    "reference/memory": "reference/devices",
    "reference/held_out": "9_practice/7_held_out_data",
    "reference/weight_maps": "9_practice/5_hugging_face_weights",
}


def address_from(old: str, new: str) -> str:
    "Of a new page, relative to an old one."
    return "../" * old.count("/") + f"{new}.html"


def write_pages(app, error):
    "Sphinx's `build-finished`."
    if error is not None or app.builder.format != "html":
        return
    for old, new in MOVED.items():
        page = PAGE.format(address=address_from(old, new))
        (Path(app.outdir) / f"{old}.html").write_text(page, encoding="utf-8")


def setup(app):
    app.connect("build-finished", write_pages)
    return dict(version="1", parallel_read_safe=True, parallel_write_safe=True)
