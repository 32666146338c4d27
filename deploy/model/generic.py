"""Questions of the plainest kind, "Is this about food?", whose answers follow from what public texts are about.

By domain: clinc's domains that are not held out. By word: whether a word stands in a text. No word that the name of a
held-out intent is made of is asked for.
"""

import random
import re
from collections import Counter

from triage import Row

DOMAINS = {
    "food": ("restaurant_reviews accept_reservations restaurant_suggestion cancel_reservation confirm_reservation how_busy restaurant_reservation meal_suggestion calories recipe nutrition_info food_last ingredient_substitution ingredients_list cook_time", ["food or cooking", "meals", "eating", "a kitchen or a meal"]),
    "home": ("calendar calendar_update reminder reminder_update shopping_list shopping_list_update todo_list todo_list_update smart_home order order_status play_music next_song what_song update_playlist", ["a list, a calendar or the house", "daily life at home", "music, lists and the house"]),
    "car": ("traffic directions gas gas_type distance uber schedule_maintenance oil_change_when oil_change_how jump_start current_location last_maintenance tire_pressure tire_change mpg", ["a car or the road", "driving", "getting somewhere by road", "a vehicle"]),
    "phone": ("text make_call find_phone share_location change_volume change_speed change_accent user_name change_ai_name change_language reset_settings sync_device whisper_mode", ["a phone or a device's settings", "how the device behaves", "settings"]),
    "chat": ("are_you_a_bot what_is_your_name who_made_you how_old_are_you where_are_you_from do_you_have_pets meaning_of_life tell_joke fun_fact what_are_your_hobbies who_do_you_work_for greeting goodbye", ["small talk", "the assistant itself", "chatting without a purpose"]),
    "money": ("bill_balance bill_due pay_bill account_blocked freeze_account interest_rate min_payment order_checks pin_change report_fraud routing spending_history transactions transfer credit_limit credit_limit_change credit_score improve_credit_score international_fees new_card redeem_rewards report_lost_card replacement_card_duration rewards_balance card_declined expiration_date apr application_status damaged_card", ["money", "a bank", "finances", "banking or credit"]),
    "facts": ("weather time date timer alarm roll_dice flip_coin definition spelling calculator measurement_conversion", ["a plain fact, a measure or the time", "general knowledge", "numbers, words or the weather"]),
}  # fmt: skip
FRAMES = ("Is this about {}?", "Is the subject {}?", "Does the message concern {}?", "Is the customer asking about {}?", "Is this related to {}?", "Does it have to do with {}?", "Is the intent to ask about {}?", "Is the intent to ask something related to {}?", "Does the customer talk about {}?", "Is the topic {}?")  # fmt: skip
WORD_FRAMES = ("Does the customer mention {}?", "Is this about {}?", "Is the intent to ask about something related to {}?", "Does the message speak of {}?", "Is the intent to talk about {}?", "Is {} part of the message?")  # fmt: skip
STOP = {"about", "after", "again", "been", "before", "being", "could", "does", "down", "from", "have", "here", "just", "know", "like", "make", "many", "more", "most", "much", "need", "other", "over", "please", "same", "should", "some", "such", "take", "than", "that", "their", "them", "then", "there", "these", "they", "this", "those", "through", "under", "until", "very", "want", "what", "when", "where", "which", "while", "will", "with", "would", "your", "yours", "cant", "dont", "didnt", "help", "tell", "tried", "trying", "using", "used", "still", "find", "give", "show", "thank", "thanks", "into", "only", "also", "even", "every", "something", "anything", "thing", "things"}  # fmt: skip


def generic_rows(corpus, chance: random.Random, *, count: int) -> list[Row]:
    """About `count` rows by domain and as many by word."""
    by_intent = {intent: name for name, (intents, _) in DOMAINS.items() for intent in intents.split()}
    made = []
    known = [(text, by_intent[intent]) for text, intent in corpus.clinc if intent in by_intent]
    known += [(text, "money") for text, _ in corpus.banking]
    for text, own in chance.sample(known, min(count // 2, len(known))):
        other = chance.choice([name for name in DOMAINS if name != own])
        for name in (own, other):
            question = chance.choice(FRAMES).format(chance.choice(DOMAINS[name][1]))
            made.append(Row(text, question, float(name == own), f"generic:{name}"))
    return made + _word_rows(corpus, chance, count)


def _word_rows(corpus, chance: random.Random, count: int) -> list[Row]:
    held = {word for intent in corpus.held_intents for word in re.findall("[a-z]+", intent.lower())}
    held |= {word.rstrip("s") for word in held} | {word + "s" for word in held}
    texts = [t for t, _ in corpus.clinc + corpus.banking] + [t for t, _ in corpus.nlupp]
    words = [set(re.findall("[a-z]{4,}", t.lower())) - STOP - held for t in texts]
    often = Counter(word for each in words for word in each)
    common = sorted(w for w, n in often.items() if n >= 12)
    weights = [often[w] ** 0.5 for w in common]
    made = []
    for place in chance.sample(range(len(texts)), min(count // 2, len(texts))):
        there = sorted(w for w in words[place] if often[w] >= 12)
        if not there:
            continue
        word = chance.choice(there)
        other = chance.choices(common, weights)[0]
        frame = chance.choice(WORD_FRAMES)
        made.append(Row(texts[place], frame.format(word), 1.0, f"generic:{word}", 0.7))
        if other not in texts[place].lower():
            made.append(Row(texts[place], frame.format(other), 0.0, f"generic:{other}", 0.7))
    return made
